#!/bin/sh
read -r message || :
