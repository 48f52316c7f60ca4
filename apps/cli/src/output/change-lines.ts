import type { JsonValue } from "@bufbuild/protobuf";
import { changedField, type FieldChange } from "@plinth/documents";
import { oneLine } from "./printable.ts";
import { cutTo, textWidth } from "./text-width.ts";

/** How changes are shown. */
export interface ChangeLayout {
	/** The columns of the terminal; `undefined` if nothing may be cut. */
	readonly width: number | undefined;
	readonly color: boolean;
	/** Whether all changes are shown, and what each write of a status changes beside others. */
	readonly isWide: boolean;
}

/** At least so much of a value is shown, however narrow the terminal is. */
const minValueWidth = 12;

/** What is shown of two long values before their first difference. */
const contextWidth = 8;

const arrow = " → ";

/** The most changes of one version that are shown, unless all are. */
const maxChanges = 20;

/**
 * Changes with a line each, as in `~ data.title: Alien → Aliens`. Objects that were added or removed have a line for each of
 * their fields. A last line says how many are not shown.
 */
export function changeLines(
	changes: readonly FieldChange[],
	{ width, color, isWide }: ChangeLayout,
): readonly string[] {
	const fields = changes.flatMap(leavesOf);
	const shown = isWide ? fields : withoutRoutine(fields);
	const hidden = isWide ? 0 : shown.length - maxChanges;
	const lines = (hidden > 0 ? shown.slice(0, maxChanges) : shown).map((change) => {
		const sign = signOf(change);
		const start = oneLine(`  ${sign} ${changedField(change)}: `);
		const left = width === undefined ? undefined : width - textWidth(start);
		const line = `${start}${valuesText(change, left)}`;
		return `${color ? `\x1b[${colors[sign]}m${line}\x1b[39m` : line}\n`;
	});
	return hidden > 0 ? [...lines, `  … and ${hidden} more changes: -o wide shows them\n`] : lines;
}

/** The changes without those that each write of a status makes, unless nothing else has changed. */
function withoutRoutine(changes: readonly FieldChange[]): readonly FieldChange[] {
	const others = changes.filter(
		({ path: [field, , part] }) =>
			field !== "status" || (part !== "updated_at" && part !== "observed_generation"),
	);
	return others.length === 0 ? changes : others;
}

type Sign = "+" | "-" | "~";

const colors: Readonly<Record<Sign, number>> = { "+": 32, "-": 31, "~": 33 };

function signOf({ before, after }: FieldChange): Sign {
	if (before === undefined) {
		return "+";
	}
	return after === undefined ? "-" : "~";
}

/** An object that was added or removed, as its fields. */
function leavesOf(change: FieldChange): readonly FieldChange[] {
	const { path, before, after } = change;
	const value = before === undefined ? after : after === undefined ? before : undefined;
	if (typeof value !== "object" || value === null || Array.isArray(value)) {
		return [change];
	}
	const fields = Object.entries(value);
	// A field of an element of a list would look like a change of that element.
	return fields.length === 0 || typeof path.at(-1) === "number"
		? [change]
		: fields.flatMap(([key, one]) =>
				leavesOf({
					path: [...path, key],
					...(before === undefined ? { after: one } : { before: one }),
				}),
			);
}

function valuesText({ before, after }: FieldChange, width: number | undefined): string {
	if (before === undefined || after === undefined) {
		const text = valueText(before ?? after ?? "");
		return width === undefined ? text : cutTo(text, Math.max(width, minValueWidth));
	}
	const [from, to] = [valueText(before), valueText(after)];
	const whole = `${from}${arrow}${to}`;
	if (width === undefined || cutTo(whole, Math.max(width, 0)) === whole) {
		return whole;
	}
	const room = Math.max(width - arrow.length, 2 * minValueWidth);
	const [fromDifferent, toDifferent] = fromDifference(from, to);
	const fromHere = cutTo(fromDifferent, room);
	const toHere = cutTo(toDifferent, room);
	// What one value does not need is left to the other.
	const half = Math.floor(room / 2);
	const fromWidth = Math.max(half, room - textWidth(toHere));
	const toWidth = Math.max(half, room - textWidth(fromHere));
	return `${cutTo(fromHere, fromWidth)}${arrow}${cutTo(toHere, toWidth)}`;
}

/** Two long texts from shortly before their first difference on. */
function fromDifference(a: string, b: string): readonly [string, string] {
	let same = 0;
	while (same < a.length && a[same] === b[same]) {
		same += 1;
	}
	const start = same - contextWidth;
	return start <= 1
		? [a, b]
		: [`…${a.slice(start).toWellFormed()}`, `…${b.slice(start).toWellFormed()}`];
}

/** A value on one line: text as it is, unless it would be hard to recognize. */
function valueText(value: JsonValue): string {
	return typeof value === "string" &&
		value !== "" &&
		value.trim() === value &&
		!value.includes("\n")
		? oneLine(value)
		: oneLine(JSON.stringify(value));
}
