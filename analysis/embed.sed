# Makes each line of a text file one C string, for #include inside the braces of an array.
s/[\\"]/\\&/g
s/.*/"&\\n",/
