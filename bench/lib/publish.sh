# For the benches whose tables another program prints. Takes --save out of the arguments of the script that reads this.
bench_command="bench/$(basename "$0")"
bench_save=()
if [ "${1-}" = --save ]; then
  bench_save=(--save)
  shift
fi
for word in "$@"; do
  bench_command+=" $(printf %q "$word")"
done

# publish NAME QUESTION: repeats what it reads, and saves its first table.
publish() {
  PYTHONPATH=bench python3 -m lib.results "$bench_command" "${bench_save[@]}" "$@"
}
