"""The functions of the tasks, thin: they call the rooms of the library."""
