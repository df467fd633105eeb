"""What can be asked. Lists and figures are read here and nowhere else; nothing is changed."""
