#!/bin/sh
# Makes a thumbnail of an image.  The message is the name of the image below
# IMAGES, and nothing else:
#
#	redis-cli LPUSH thumbnails 2026/11/cat.jpg
#
# Running it twice makes the same file twice.
#
#	queue "thumbnails" {
#	    command     = {"/usr/local/bin/thumbnail.sh"}
#	    user        = "www-data"
#	    env         = {"IMAGES=/srv/images", "THUMBNAILS=/srv/thumbnails"}
#	    concurrency = 2
#	    nice        = 10
#	    time_limit  = 2m
#	    limit_as    = 2G
#	}
#
# IMAGES	where they are
# THUMBNAILS	where thumbnails go
# SIZE		their largest width and height (256)

set -u

name=$(cat) || exit
case /$name/ in
// | //* | */../* | */./* | *[[:cntrl:]]*)
	echo 'not the name of an image' >&2
	exit 65
	;;
esac

# Where it really is: a symbolic link must not lead out of IMAGES either.
images=$(realpath -e -- "${IMAGES:?}") || exit 75
image=$(realpath -e -- "$images/$name") || case $? in 1) exit 65 ;; *) exit ;; esac
case $image in
"$images"/*) ;;
*) echo "$name is outside of $images" >&2; exit 65 ;;
esac
if [ ! -f "$image" ]; then
	echo "no such image: $name" >&2
	exit 65
fi
out=${THUMBNAILS:?}/$name

mkdir -p "$(dirname "$out")" || exit 75
temp=$(mktemp "$out.XXXXXX") || exit 75
trap 'rm -f "$temp"' EXIT
trap 'exit 143' TERM			# not 0: it is not done

# By descriptors: convert sees patterns and prefixes in names of files.
convert '-[0]' -auto-orient -thumbnail "${SIZE:-256}x${SIZE:-256}>" jpeg:- <"$image" >"$temp"
case $? in
0) ;;
126 | 127) exit 127 ;;			# no convert: nothing is wrong with the image
1) exit 65 ;;				# it cannot be read as an image
*) exit 75 ;;
esac
chmod 644 "$temp" && mv -f "$temp" "$out" || exit 75
