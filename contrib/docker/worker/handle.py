"""Handles one job: reads its args from standard input and writes its result to the file that JOB_RESULT_FILE names."""

import json
import os
import sys


def main() -> int:
    args = json.load(sys.stdin)
    greeting = f"Hello, {args.get('name', 'world')}!"
    print(f"{os.environ['JOB_KIND']} {os.environ['JOB_ID']}: {greeting}", flush=True)
    with open(os.environ["JOB_RESULT_FILE"], "w", encoding="utf-8") as result:
        json.dump(greeting, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
