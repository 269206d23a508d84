"""A Streamlit app: what every head does on the text that is typed. Run it with `streamlit run
in_streamlit.py`.
"""

import streamlit as st
import streamlit.components.v1 as components

import headscope as hs

text = st.text_input("Text", "The rabbit quickly hopped across the road.")
record = hs.capture(None, text=text)
components.html(hs.view(record).html, height=800, scrolling=True)
