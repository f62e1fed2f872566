"""What each error of the server's catalogue becomes, a file for each kind of thing it is about."""
