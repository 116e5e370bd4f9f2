"""The derived tables, a module each: functions from DataFrames to a DataFrame."""
