"""The report: one HTML file that tells what the tables of a run hold.

Data flows down this list. Each module of a section turns tables into small Python values, with Spark; nothing that
grows with the log reaches the page. `text` keeps every string of the log once, as data, and `page` puts data, style,
script and plotly into one file that asks nobody for anything.
"""
