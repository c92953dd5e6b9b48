"""servecast: a discrete-event simulator of LLM serving."""
