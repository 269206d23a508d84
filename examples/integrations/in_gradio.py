"""A Gradio app: the page in a frame of its own, as Gradio runs no scripts of the HTML that it
shows.
"""

from html import escape

import gradio as gr

import headscope as hs


def shown(text):
    """The page of a text."""
    page = hs.view(hs.capture(None, text=text)).html
    return (
        f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 800px; border: 0"></iframe>'
    )


gr.Interface(fn=shown, inputs=gr.Textbox(label="Text"), outputs=gr.HTML()).launch()
