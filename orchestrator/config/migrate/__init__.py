"""Job files made from the settings of other programs: each parser takes texts, gives values, and changes nothing."""
