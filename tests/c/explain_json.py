#!/usr/bin/env python3
"""Holds explained plans to their schema (docs/explain.md).

usage: explain_json.py FILE [KEY=NUMBER...]

Each line of FILE is one JSON object as ggml_ext_explain writes it. Keys, types and sums are checked, and that `totals` of the last
line have what KEY=NUMBER says. The status is 0 when all holds; the first fault is printed.
"""
import json
import sys

NUMBER, TEXT, TRUTH, NULL = int, str, bool, type(None)
PLACE = {"name": TEXT, "split": (NUMBER, NULL), "node": (NUMBER, NULL)}
TOTALS = ("splits steps nodes launches fusions fused_nodes native_ranges native_nodes skipped skipped_bytes workspace refused "
          "mean_ns").split()
SCHEMA = {
    "plan": {"version": NUMBER, "totals": dict, "splits": list},
    "totals": dict.fromkeys(TOTALS, NUMBER),
    "split": {"split": NUMBER, "backend": TEXT, "device": TEXT, "stale": (TEXT, NULL), "workspace": NUMBER,
              "workspace_for": (TEXT, NULL), "forbidden": list, "forced": list, "copied": list, "steps": list},
    "copied": {**PLACE, "from": TEXT, "bytes": NUMBER},
    "step": {"step": NUMBER, "kind": TEXT, "launch": (dict, NULL), "runs": NUMBER, "ns": NUMBER, "nodes": list},
    "launch": {"registration": TEXT, "priority": NUMBER, "flags": list, "forced": TRUTH, "workspace": NUMBER, "reads": list},
    "launch.read": {**PLACE, "overlaps": TRUTH},
    "node": {"node": NUMBER, "name": TEXT, "op": TEXT, "type": TEXT, "ne": list, "bytes": NUMBER, "owns": TRUTH, "computed": TRUTH,
             "output": TRUTH, "skipped": TRUTH, "reads": list, "tried": list},
    "node.read": PLACE,
    "tried": {"registration": TEXT, "nodes": NUMBER, "reason": TEXT},
}


class Fault(Exception):
    pass


def hold(condition, text):
    if not condition:
        raise Fault(text)


def unique(pairs):
    keys = [key for key, _ in pairs]
    hold(len(set(keys)) == len(keys), f"a key twice: {keys}")
    return dict(pairs)


def shaped(value, what):
    """`value` is an object with exactly the keys of the schema, of their types."""
    hold(type(value) is dict, f"{what}: no object")
    schema = SCHEMA[what]
    hold(set(value) == set(schema), f"{what}: keys {sorted(set(value) ^ set(schema))}")
    for key, types in schema.items():
        types = types if isinstance(types, tuple) else (types,)
        hold(type(value[key]) in types, f"{what}.{key}: {value[key]!r}")
    return value


def place(read, nodes, what):
    hold((read["split"] is None) == (read["node"] is None), f"{what}: half a place: {read}")
    if read["split"] is not None:
        known = nodes.get((read["split"], read["node"]))
        hold(known is not None and known["name"] == read["name"], f"{what}: no such node: {read}")


def check(plan):
    shaped(plan, "plan")
    hold(plan["version"] == 1, f"version {plan['version']}")
    totals = shaped(plan["totals"], "totals")
    sums, nodes, workspaces, step_number = dict.fromkeys(TOTALS, 0), {}, {}, 0
    for i, split in enumerate(plan["splits"]):
        shaped(split, "split")
        hold(split["split"] == i, f"split {split['split']} at {i}")
        sums["splits"] += 1
        workspaces[split["backend"]] = max(split["workspace"], workspaces.get(split["backend"], 0))
        hold((split["workspace"] == 0) == (split["workspace_for"] is None), f"split {i}: workspace for {split['workspace_for']}")
        number = 0
        for step in split["steps"]:
            shaped(step, "step")
            hold(step["step"] == step_number, f"step {step['step']} at {step_number}")
            step_number += 1
            n = len(step["nodes"])
            kind = "native" if step["launch"] is None else "kernel" if n == 1 else "fusion"
            hold(step["kind"] == kind and n > 0, f"step {step['step']}: {step['kind']} of {n} nodes")
            sums["steps"] += 1
            sums["nodes"] += n
            sums["launches"] += kind != "native"
            sums["native_ranges"] += kind == "native"
            sums["native_nodes"] += n * (kind == "native")
            sums["fusions"] += kind == "fusion"
            sums["fused_nodes"] += n * (kind == "fusion")
            sums["mean_ns"] += step["ns"] // step["runs"] if step["runs"] else 0
            for node in step["nodes"]:
                shaped(node, "node")
                hold(node["node"] == number, f"node {node['node']} at {number}")
                nodes[i, number] = node
                number += 1
                hold(len(node["ne"]) == 4 and all(type(n) is int for n in node["ne"]), f"ne {node['ne']}")
                sums["skipped"] += node["skipped"]
                sums["skipped_bytes"] += node["bytes"] * (node["skipped"] and node["owns"])
                sums["refused"] += len(node["tried"])
                for tried in node["tried"]:
                    shaped(tried, "tried")
    sums["workspace"] = sum(workspaces.values())
    hold(sums == totals, f"totals are {totals}, the sums {sums}")
    for split in plan["splits"]:
        for copied in split["copied"]:
            place(shaped(copied, "copied"), nodes, "copied")
        for step in split["steps"]:
            for read in shaped(step["launch"], "launch")["reads"] if step["launch"] else []:
                place(shaped(read, "launch.read"), nodes, "launch.read")
            for node in step["nodes"]:
                for read in node["reads"]:
                    place(shaped(read, "node.read"), nodes, "node.read")
    return totals


def main():
    path, *wanted = sys.argv[1:]
    with open(path, "rb") as file:
        lines = file.read().decode("utf-8", "strict").split("\n")
    try:
        hold(lines[-1] == "" and len(lines) > 1, "no line, or the last one has no end")
        for number, line in enumerate(lines[:-1], 1):
            try:
                totals = check(json.loads(line, object_pairs_hook=unique))
            except (ValueError, Fault) as fault:
                raise Fault(f"line {number}: {fault}") from None
        for want in wanted:
            key, _, value = want.partition("=")
            hold((len(lines) - 1 if key == "lines" else totals[key]) == int(value), f"{want}: {totals}, {len(lines) - 1} lines")
    except Fault as fault:
        print(f"{path}: {fault}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
