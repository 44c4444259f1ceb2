"""From files to files: annotations in, opinions out, all of them or nothing."""
