def judge():
    pass
def report():
    pass
def verdict():
    pass
