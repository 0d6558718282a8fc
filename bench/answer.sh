#!/bin/sh
while read -r n attempt length id && IFS= read -r message; do
	echo "$n ok"
done
