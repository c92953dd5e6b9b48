"""The web page. It only calls public functions of the rooms below."""
