"""The web page: ``streamlit run app.py``."""

if __name__ == "__main__":
    from calibration.web import page as calibrate
    from sim.ui.main import main

    main({"Calibrate": calibrate.draw})
