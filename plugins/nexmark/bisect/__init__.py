"""Which build of a sequence brought a change: nights of builds on demand, until one is named."""
