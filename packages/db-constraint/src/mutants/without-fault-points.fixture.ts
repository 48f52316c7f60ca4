import {
	type Expression,
	type IfStatement,
	type Program,
	parseSync,
	type Span,
	Visitor,
} from "oxc-parser";

/** A part of the text, and what to replace it by. */
interface Edit extends Span {
	readonly text: string;
}

/**
 * Removes the fault points from the text of a module, and everything that only a fault needs, as if `isPlanted` were
 * replaced by its constant result. Lines keep their numbers, so that source maps stay true.
 *
 * @throws Error if a fault point is in a place that it can't be removed from.
 */
export function withoutFaultPoints(file: string, source: string): string {
	let text = source;
	for (;;) {
		const edit = nextEdit(file, text);
		if (edit === undefined) {
			break;
		}
		const lines = text.slice(edit.start, edit.end).split("\n").length;
		const missing = "\n".repeat(lines - edit.text.split("\n").length);
		text = text.slice(0, edit.start) + edit.text + missing + text.slice(edit.end);
	}
	if (text.includes("isPlanted")) {
		throw new Error(
			`${file}: a fault point must be a whole condition, or an operand of "||" or "&&" that its result decides`,
		);
	}
	return text;
}

/** The first simplification that a fault point allows. */
function nextEdit(file: string, text: string): Edit | undefined {
	const edits: Edit[] = [];
	const keep = ({ start, end }: Span, kept: Span | undefined) =>
		edits.push({ start, end, text: kept === undefined ? "" : text.slice(kept.start, kept.end) });
	let isUsed = false;
	let imported: Span | undefined;
	new Visitor({
		ImportDeclaration(node) {
			imported = node.specifiers.some(({ local }) => local.name === "isPlanted") ? node : imported;
		},
		CallExpression(node) {
			isUsed ||= isPlantedCall(node);
		},
		IfStatement(node) {
			const taken = branchOf(node);
			if (taken !== undefined) {
				keep(node, taken.branch ?? undefined);
			}
		},
		ConditionalExpression(node) {
			const test = constantOf(node.test);
			if (test !== undefined) {
				keep(node, test ? node.consequent : node.alternate);
			}
		},
		LogicalExpression(node) {
			const neutral = node.operator === "&&";
			if (constantOf(node) === undefined && constantOf(node.left) === neutral) {
				keep(node, node.right);
			} else if (constantOf(node) === undefined && constantOf(node.right) === neutral) {
				keep(node, node.left);
			}
		},
	}).visit(parsed(file, text));
	if (!isUsed && imported !== undefined) {
		keep(imported, undefined);
	}
	return edits[0];
}

function parsed(file: string, text: string): Program {
	const { program, errors } = parseSync(file, text);
	if (errors.length > 0) {
		throw new Error(`${file}: without its fault points, it can't be parsed: ${errors[0]?.message}`);
	}
	return program;
}

function branchOf({ test, consequent, alternate }: IfStatement) {
	const isTaken = constantOf(test);
	return isTaken === undefined ? undefined : { branch: isTaken ? consequent : alternate };
}

/** The value of an expression of which no other operand is evaluated, if no fault is planted. */
function constantOf(node: Expression): boolean | undefined {
	switch (node.type) {
		case "ParenthesizedExpression":
			return constantOf(node.expression);
		case "CallExpression":
			return isPlantedCall(node) ? false : undefined;
		case "UnaryExpression": {
			const negated = node.operator === "!" ? constantOf(node.argument) : undefined;
			return negated === undefined ? undefined : !negated;
		}
		case "LogicalExpression": {
			const left = constantOf(node.left);
			const decides = node.operator === "||";
			return left === decides ? decides : left === undefined ? undefined : constantOf(node.right);
		}
		default:
			return undefined;
	}
}

function isPlantedCall(node: Expression): boolean {
	return (
		node.type === "CallExpression" &&
		node.callee.type === "Identifier" &&
		node.callee.name === "isPlanted"
	);
}
