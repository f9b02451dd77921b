# SPDX-License-Identifier: Apache-2.0
"""Rules about the OpenAPI document. Each takes {path: text} and returns what is wrong, as those of rules.py do."""
OPENAPI = "api/openapi.yaml"


def undescribed(node, where):
    """Paths of the properties without a description."""
    if isinstance(node, list):
        return [p for part in node for p in undescribed(part, where)]
    if not isinstance(node, dict):
        return []
    properties = node["properties"] if isinstance(node.get("properties"), dict) else {}
    return [f"{where}.{name}" for name, schema in properties.items() if not schema.get("description")] + \
        [p for name, part in node.items() if name != "example" for p in undescribed(part, f"{where}/{name}")]


def contract_described(files):
    """Each operation has a tag, a summary and the 4xx that it answers, each parameter and property a description."""
    if OPENAPI not in files:
        return []
    import yaml
    contract = yaml.safe_load(files[OPENAPI]) or {}
    tags = {t["name"] for t in contract.get("tags", [])}
    wrong = [f"{OPENAPI}: {where} has no description" for where in undescribed(contract, "")]
    for path, item in contract.get("paths", {}).items():
        for method in set(item) & {"get", "put", "post", "delete", "patch"}:
            operation, call = item[method], f"{OPENAPI}: {method.upper()} {path}"
            if len(operation.get("tags", [])) != 1 or not set(operation["tags"]) <= tags:
                wrong.append(f"{call}: needs one of the tags")
            if not operation.get("summary"):
                wrong.append(f"{call}: no summary")
            if not any(str(code).startswith("4") for code in operation.get("responses", {})):
                wrong.append(f"{call}: lists no 4xx")
            wrong += [f"{call}: parameter {p['name']} has no description" for p in
                      operation.get("parameters", []) if "$ref" not in p and not p.get("description")]
    return wrong


RULES = [contract_described]
