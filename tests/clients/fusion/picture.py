"""Cuts a plan to a part of its nodes, for a picture: picture.py PLAN.dot PLAN.json FROM TO TITLE > part.dot

FROM and TO begin names of nodes; the steps between stay as ggml_ext_explain writes them, with the edges between those. Changed is what
makes long plans hard to read: nodes that compute nothing go, a native step of many nodes lists those that have names and counts
the others side by side, and names that say nothing (" (view)", "node_7") are left out.
"""
import json
import re
import sys
from collections import Counter
from html import escape

STEP = re.compile(r'  s(\d+_\d+) \[label=')
EDGE = re.compile(r'  (\w+) -> (\w+)')
CELL = re.compile(r'<TD[^>]*>(.*?)</TD>')
TAG = re.compile(r'<[^>]*>')
IDLE = re.compile(r'( *\([a-z]+\))+|node_\d+')
INK, GREY = '#1f2933', '#6b7280'
# Counted operators in a line.
IN_LINE = 5


def words(line):
    """The text of the cells of a line: number and operator, name, shape."""
    return [TAG.sub('', cell) for cell in CELL.findall(line)]


def small(text):
    return f'<FONT POINT-SIZE="9" COLOR="{GREY}">{text}</FONT>'


def row(cells, wide=False):
    span = ' COLSPAN="3"' if wide else ''
    return '    <TR>' + ''.join(f'<TD{span} ALIGN="LEFT">{c}</TD>' for c in cells) + '</TR>\n'


def listed(lines, first, last):
    """Lines of nodes, each with its number: those from `first` to `last` that compute something, and how many there were."""
    inside = [n for n in lines if first <= int(words(n)[0].split()[0]) <= last]
    # black, or framed as one that is left out
    shown = [n for n in inside if 'STYLE="dashed"' in n or f'<FONT COLOR="{INK}">' in n]
    return [re.sub(rf'>({IDLE.pattern})…?<', '> <', n) for n in shown], len(inside)


def counted(nodes):
    """Lines for many nodes: the named ones, then how many of each operator."""
    lines, rest = [], Counter()
    for n in nodes:
        if not n['computed']:
            continue
        if not n['name'] or IDLE.fullmatch(n['name']):
            rest[n['op']] += 1
            continue
        ne = n['ne']
        while len(ne) > 1 and ne[-1] == 1:
            ne = ne[:-1]
        lines.append(row([f'{small(n["node"])}  {escape(n["op"])}', escape(n['name']), f'{n["type"]} {ne}']))
    cells = [escape(op) + (f' {small(f"× {times}")}' if times > 1 else '') for op, times in rest.items()]
    for i in range(0, len(cells), IN_LINE):
        lines.append(row(['&#160;&#160; '.join(cells[i:i + IN_LINE])], wide=True))
    return lines


def box(lines, step, first, last):
    """The lines of a step, of its table."""
    head, nodes = lines[:2], [n for n in lines[2:-1] if len(words(n)) == 3]
    if not nodes:
        return head + counted(step['nodes']) + lines[-1:]
    body, inside = listed(nodes, first, last)
    if inside < len(nodes):
        head[1] = re.sub(r'(\d+ nodes)', rf'{inside} of \1', head[1])
    return head + body + lines[-1:]


def read(lines):
    """What comes before the steps, the steps in order, the edges."""
    before, steps, edges = [], {}, []
    lines = iter(lines)
    for line in lines:
        if m := STEP.match(line):
            step = steps[m[1]] = [line]
            while not step[-1].startswith('  </TABLE>'):
                step.append(next(lines))
        elif m := EDGE.match(line):
            edges.append((m[1][1:], m[2][1:], line))
        elif not steps:
            before.append(line)
    return before, steps, edges


def find(plan, name):
    """Step and number of the first node whose name begins like this."""
    for s in plan['splits']:
        for i, step in enumerate(s['steps']):
            for n in step['nodes']:
                if n['name'].startswith(name):
                    return f'{s["split"]}_{i}', n['node']
    sys.exit(f'no node is called {name}')


def main():
    dot, plan, first, last, title = sys.argv[1:]
    with open(dot, encoding='utf-8') as f:
        before, steps, edges = read(f)
    with open(plan, encoding='utf-8') as f:
        plan = json.load(f)
    (step1, node1), (step2, node2) = find(plan, first), find(plan, last)
    order = list(steps)
    kept = order[order.index(step1):order.index(step2) + 1]
    title = f'<FONT POINT-SIZE="13" COLOR="{INK}"><B>{escape(title)}</B></FONT><BR/><FONT POINT-SIZE="4"> <BR/></FONT>'
    facts = (f'nodes {node1} to {node2} of {plan["totals"]["nodes"]}; green: {plan["totals"]["fusions"]} fusions in the whole graph; '
             'dashed: nodes that have no memory<BR/> ')
    for line in before:
        sys.stdout.write(f'  labelloc="t"; label=<{title}{facts}>;\n' if line.startswith('  label=') else line)
    for key in kept:
        split, step = map(int, key.split('_'))
        sys.stdout.writelines(box(steps[key], plan['splits'][split]['steps'][step], node1, node2))
    for a, b, line in edges:
        if a in kept and b in kept:
            sys.stdout.write(line)
    sys.stdout.write('}\n')


if __name__ == '__main__':
    main()
