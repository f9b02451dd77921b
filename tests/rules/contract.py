# SPDX-License-Identifier: Apache-2.0
"""Rules about the OpenAPI documents. Each takes {path: text} and returns what is wrong, as those of rules.py do."""
import rules


def undescribed(node, where, components):
    """Paths of the properties without a description of their own, or of the component that they are."""
    if isinstance(node, list):
        return [p for part in node for p in undescribed(part, where, components)]
    if not isinstance(node, dict):
        return []
    properties = node["properties"] if isinstance(node.get("properties"), dict) else {}
    return [f"{where}.{name}" for name, schema in properties.items()
            if not {**components.get(schema.get("$ref", ""), {}), **schema}.get("description")] + \
        [p for name, part in node.items() if name != "example" for p in undescribed(part, f"{where}/{name}", components)]


def contract_described(files):
    """Each operation has a tag, a summary and the errors that it answers, each parameter and property a description."""
    return [fault for path in rules.CONTRACTS.values() if path in files for fault in faults_of(files[path], path)]


def faults_of(text, name):
    import yaml
    contract = yaml.safe_load(text) or {}
    tags = {t["name"] for t in contract.get("tags", [])}
    components = {f"#/components/schemas/{s}": schema for s, schema in contract.get("components", {}).get("schemas", {}).items()}
    wrong = [f"{name}: {where} has no description" for where in undescribed(contract, "", components)]
    for path, item in contract.get("paths", {}).items():
        for method in set(item) & {"get", "put", "post", "delete", "patch"}:
            operation, call = item[method], f"{name}: {method.upper()} {path}"
            if len(operation.get("tags", [])) != 1 or not set(operation["tags"]) <= tags:
                wrong.append(f"{call}: needs one of the tags")
            if not operation.get("summary"):
                wrong.append(f"{call}: no summary")
            if not any(code == "default" or str(code).startswith("4") for code in operation.get("responses", {})):
                wrong.append(f"{call}: lists no error")
            wrong += [f"{call}: parameter {p['name']} has no description" for p in
                      operation.get("parameters", []) if "$ref" not in p and not p.get("description")]
    return wrong


RULES = [contract_described]
