import {
	clone,
	type DescField,
	type DescMessage,
	getOption,
	hasOption,
	isMessage,
	type MessageShape,
} from "@bufbuild/protobuf";
import {
	isReflectMessage,
	type ReflectList,
	type ReflectMap,
	type ReflectMessage,
	reflect,
} from "@bufbuild/protobuf/reflect";
import { type Reference, ReferenceSchema } from "@plinth/proto";
import { OnDelete, reference } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { reasonNotClearable } from "./clearable.ts";

/** The option of a reference field. */
export interface ReferenceRule {
	/** The parts of a type such as `demo.v2.Artist`. */
	readonly group: string;
	readonly groupVersion: string;
	readonly kind: string;
	readonly onDelete: OnDelete;
	/** Why a reference in the field can't be cleared; `undefined` if it can. */
	readonly notClearable: string | undefined;
}

/** A reference in a message, and its path. */
export interface FoundReference {
	/** For example `spec.members["a"].next`. Elements of lists have no index: lists are sets of values. */
	readonly path: string;
	/** The same by the numbers of the fields, for example `3.5.2.1`. An entry of a map has its value as field 2. */
	readonly field: string;
	readonly reference: Reference;
	readonly rule: ReferenceRule;
}

/**
 * The fields of a message type that are references or lead to references. Types may be recursive, so this is a
 * graph and not a list of paths.
 *
 *     Album ── label: rule
 *           └─ tracks ──▶ Track ── singer: rule
 *                           └────── remixes ──▶ Track
 */
export class ReferenceFields {
	readonly #schema: DescMessage;
	/** By message type. Types that lead to no reference have no entry. */
	readonly #fields: ReadonlyMap<DescMessage, readonly Step[]>;

	/** @throws Error that names the first field with a malformed option. `referenceProblems` returns all. */
	constructor(schema: DescMessage) {
		this.#schema = schema;
		this.#fields = stepsOf(schema);
	}

	/** Whether the type has no references. */
	get isEmpty(): boolean {
		return this.#fields.size === 0;
	}

	/** The rules of all fields with their names, in an order that depends only on the schema. */
	get rules(): readonly { readonly field: string; readonly rule: ReferenceRule }[] {
		return [...this.#fields.values()]
			.flat()
			.flatMap(({ field, rule }) => (rule ? [{ field: field.toString(), rule }] : []))
			.sort((a, b) => (a.field < b.field ? -1 : 1));
	}

	/** What decides where references are found in stored data, in an order that depends only on the schema. */
	get structure(): readonly string[] {
		return [...this.#fields.values()]
			.flat()
			.map(({ field }) =>
				[
					...[field, field.number, field.fieldKind, messageOf(field)?.typeName],
					// Of these, only one that is stored is found: the last.
					field.oneof?.fields
						.map(({ number }) => number)
						.sort((a, b) => a - b)
						.join(),
				].join(" "),
			)
			.sort();
	}

	/** The references of a message. Empty ones are omitted. */
	find(message: MessageShape<DescMessage>): readonly FoundReference[] {
		const found: FoundReference[] = [];
		if (this.#fields.size > 0) {
			this.#visit(reflect(this.#schema, message), root, (each) => {
				found.push(each);
				return "keep";
			});
		}
		return found;
	}

	/** The message without the references for which `drops` returns true; `undefined` if there are none. */
	without(
		message: MessageShape<DescMessage>,
		drops: (found: FoundReference) => boolean,
	): MessageShape<DescMessage> | undefined {
		const copy = clone(this.#schema, message);
		let dropped = false;
		this.#visit(reflect(this.#schema, copy), root, (each) => {
			if (!drops(each)) {
				return "keep";
			}
			dropped = true;
			return "drop";
		});
		return dropped ? copy : undefined;
	}

	#visit(message: ReflectMessage, inside: Place, decide: Decide): void {
		for (const { field, rule } of this.#fields.get(message.desc) ?? []) {
			const place = { path: inside.path + field.name, field: inside.field + field.number };
			if (field.fieldKind === "message") {
				if (message.isSet(field)) {
					const value = message.get(field);
					if (this.#visitValue(value, place, rule, decide) === "drop") {
						message.clear(field);
					}
				}
			} else if (field.fieldKind === "list") {
				this.#visitList(message.get(field), place, rule, decide);
			} else if (field.fieldKind === "map") {
				this.#visitMap(message.get(field), place, rule, decide);
			}
		}
	}

	#visitList(
		list: ReflectList,
		place: Place,
		rule: ReferenceRule | undefined,
		decide: Decide,
	): void {
		const kept = [...list].filter(
			(value) => this.#visitValue(value, place, rule, decide) === "keep",
		);
		if (kept.length < list.size) {
			list.clear();
			for (const value of kept) {
				list.add(value);
			}
		}
	}

	#visitMap(map: ReflectMap, place: Place, rule: ReferenceRule | undefined, decide: Decide): void {
		const field = `${place.field}.2`;
		for (const [key, value] of [...map]) {
			const path = `${place.path}[${typeof key === "string" ? JSON.stringify(key) : key}]`;
			if (this.#visitValue(value, { path, field }, rule, decide) === "drop") {
				map.delete(key);
			}
		}
	}

	#visitValue(
		value: unknown,
		{ path, field }: Place,
		rule: ReferenceRule | undefined,
		decide: Decide,
	): "keep" | "drop" {
		if (!isReflectMessage(value)) {
			return "keep";
		}
		if (rule === undefined) {
			this.#visit(value, { path: `${path}.`, field: `${field}.` }, decide);
			return "keep";
		}
		const { message } = value;
		return isMessage(message, ReferenceSchema) && message.name !== ""
			? decide({ path, field, rule, reference: message })
			: "keep";
	}
}

/** The problems of the reference options of a message and of all nested types, one line each. */
export function referenceProblems(schema: DescMessage): readonly string[] {
	const problems: string[] = [];
	const messages = new Set<DescMessage>([schema]);
	for (const message of messages) {
		for (const field of message.fields) {
			try {
				const next = ruleOf(field) === undefined ? messageOf(field) : undefined;
				if (next !== undefined) {
					messages.add(next);
				}
			} catch (error) {
				problems.push(error instanceof Error ? error.message : String(error));
			}
		}
	}
	return problems;
}

type Decide = (found: FoundReference) => "keep" | "drop";

/** What the paths inside a message begin with. */
type Place = Pick<FoundReference, "path" | "field">;

const root: Place = { path: "", field: "" };

interface Step {
	readonly field: DescField;
	/** Set if the field itself is a reference. */
	readonly rule: ReferenceRule | undefined;
}

/** The fields, by message type, that are references or lead to references. */
function stepsOf(schema: DescMessage): Map<DescMessage, readonly Step[]> {
	const messages = new Set<DescMessage>([schema]);
	for (const message of messages) {
		for (const field of message.fields) {
			const next = messageOf(field);
			if (next !== undefined && ruleOf(field) === undefined) {
				messages.add(next);
			}
		}
	}
	const leads = new Set<DescMessage>();
	for (let before = -1; before !== leads.size; ) {
		before = leads.size;
		for (const message of messages) {
			if (message.fields.some((field) => isStep(field, leads))) {
				leads.add(message);
			}
		}
	}
	return new Map(
		[...leads].map((message) => [
			message,
			message.fields
				.filter((field) => isStep(field, leads))
				.map((field) => ({ field, rule: ruleOf(field) })),
		]),
	);
}

function isStep(field: DescField, leads: ReadonlySet<DescMessage>): boolean {
	const next = messageOf(field);
	return ruleOf(field) !== undefined || (next !== undefined && leads.has(next));
}

/** The message type of a field's values, if they are messages. */
function messageOf(field: DescField): DescMessage | undefined {
	switch (field.fieldKind) {
		case "message":
			return field.message;
		case "list":
		case "map":
			return field.message;
		default:
			return undefined;
	}
}

function ruleOf(field: DescField): ReferenceRule | undefined {
	if (!hasOption(field, reference)) {
		return undefined;
	}
	const { type, onDelete } = getOption(field, reference);
	const [group = "", groupVersion = "", kind = "", ...more] = type.split(".");
	if (!group || !groupVersion || !kind || more.length > 0) {
		throw new Error(
			`${field}: (plinth.schema.v1.reference).type must be as in demo.v2.Artist, not "${type}"`,
		);
	}
	if (onDelete === OnDelete.ON_DELETE_UNSPECIFIED) {
		throw new Error(
			`${field}: (plinth.schema.v1.reference).on_delete must be BLOCK, CASCADE or UNSET`,
		);
	}
	if (messageOf(field)?.typeName !== ReferenceSchema.typeName) {
		throw new Error(
			`${field}: (plinth.schema.v1.reference) is for fields of ${ReferenceSchema.typeName}`,
		);
	}
	const notClearable = reasonNotClearable(field);
	if (onDelete === OnDelete.UNSET && notClearable !== undefined) {
		throw new Error(
			`${field}: (plinth.schema.v1.reference).on_delete can't be UNSET: the field ${notClearable}`,
		);
	}
	return { group, groupVersion, kind, onDelete, notClearable };
}
