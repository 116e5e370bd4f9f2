"""Small changes to the product that some test ought to notice, and the count of those that none did."""
