import type { JsonValue } from "@bufbuild/protobuf";
import { Fragment } from "react";
import { codeParts } from "../model/code-parts.ts";
import { childOf, type Shape, type ShapedChild } from "../model/shape.ts";

/** Deeper values are shown as JSON in one line. */
const mostLevels = 20;

/** So many fields or elements are shown of one value. */
const mostEntries = 1_000;

/** A value as a tree: each field with its value and its comment, and objects and lists that can be folded. */
export function JsonTree({
	value,
	shape,
	level = 0,
}: {
	readonly value: JsonValue;
	/** What the value is, for the comments of its fields. */
	readonly shape?: Shape | undefined;
	readonly level?: number;
}) {
	if (typeof value !== "object" || value === null) {
		return <Leaf value={value} />;
	}
	const entries = Object.entries(value);
	if (entries.length === 0) {
		return <span className="muted">{Array.isArray(value) ? "empty list" : "empty"}</span>;
	}
	if (level === mostLevels) {
		return <code>{JSON.stringify(value)}</code>;
	}
	return (
		<ul className="tree">
			{entries.slice(0, mostEntries).map(([key, child], at) => (
				<li key={key}>
					<Branch name={key} value={child} {...childOf(shape, key, at)} level={level + 1} />
				</li>
			))}
			{entries.length > mostEntries && (
				<li className="muted">{entries.length - mostEntries} more, see the YAML</li>
			)}
		</ul>
	);
}

/** A comment of a proto; nothing if there is none. */
export function Comment({ text }: { readonly text: string | undefined }) {
	return (
		text !== undefined && (
			<p className="comment" dir="auto">
				{codeParts(text).map(({ at, isCode, part }) =>
					isCode ? <code key={at}>{part}</code> : <Fragment key={at}>{part}</Fragment>,
				)}
			</p>
		)
	);
}

function Branch({
	name,
	value,
	comment,
	shape,
	level,
}: ShapedChild & {
	readonly name: string;
	readonly value: JsonValue;
	readonly level: number;
}) {
	const isFolded = typeof value === "object" && value !== null && Object.keys(value).length > 0;
	if (!isFolded) {
		return (
			<>
				<span className="tree-key">{name}</span> <JsonTree value={value} level={level} />
				<Comment text={comment} />
			</>
		);
	}
	const { length } = Object.keys(value);
	return (
		<details open={level < 4}>
			<summary>
				<span className="tree-key">{name}</span>{" "}
				<span className="muted">{Array.isArray(value) ? `[${length}]` : `{${length}}`}</span>
			</summary>
			<Comment text={comment} />
			<JsonTree value={value} shape={shape} level={level} />
		</details>
	);
}

function Leaf({ value }: { readonly value: string | number | boolean | null }) {
	const kind = value === null ? "null" : typeof value;
	return <span className={`leaf leaf-${kind}`}>{value === "" ? '""' : String(value)}</span>;
}
