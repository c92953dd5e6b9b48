"""The web page: ``streamlit run app.py``."""

if __name__ == "__main__":
    from sim.ui.main import main

    main()
