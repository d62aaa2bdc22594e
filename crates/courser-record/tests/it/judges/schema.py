"""schema.json record.json...: prints what is wrong with each record, as a JSON list of lists."""

import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


schema = load(sys.argv[1])
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
complaints = [[f"{e.json_path}: {e.message}" for e in validator.iter_errors(load(path))] for path in sys.argv[2:]]
print(json.dumps(complaints))
