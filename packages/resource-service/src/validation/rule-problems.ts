import {
	clone,
	create,
	createFileRegistry,
	type DescField,
	type DescFile,
	type DescMessage,
	getOption,
	hasOption,
	setExtension,
} from "@bufbuild/protobuf";
import {
	type DescriptorProto,
	DescriptorProtoSchema,
	type FieldDescriptorProto,
	FieldDescriptorProto_Type,
	FieldDescriptorProtoSchema,
	type FieldOptions,
	FieldOptionsSchema,
	FileDescriptorProtoSchema,
	MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import {
	type FieldRules,
	FieldRulesSchema,
	field as fieldRules,
	file_buf_validate_validate,
	MessageRulesSchema,
	message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ResourceType } from "@plinth/resource";
import { filesOf, rulesRegistry } from "./rules-registry.ts";
import { sampleOf } from "./sample-message.ts";

/**
 * The invalid protovalidate rules of the types, one line each: the type, the field and the reason. With such a
 * rule, every write would fail with an internal error.
 *
 * Each rule is evaluated separately, on an empty message and on one in which every field is set: CEL has no
 * type checker here, and an expression that can't be parsed fails only when it is evaluated. Errors caused by
 * the values of these messages are not reported.
 */
export function ruleProblems(types: readonly ResourceType[]): readonly string[] {
	const validator = createValidator({ registry: rulesRegistry(types) });
	const problems: string[] = [];
	const seen = new Set<DescMessage>();
	for (const type of types) {
		for (const message of messagesOf(type.schema)) {
			if (!seen.has(message)) {
				seen.add(message);
				problems.push(
					...problemsOf(message, validator).map((problem) => `type ${type.key}: ${problem}`),
				);
			}
		}
	}
	return problems;
}

/** The message and all messages that it can contain. */
function messagesOf(schema: DescMessage): ReadonlySet<DescMessage> {
	const messages = new Set([schema]);
	for (const message of messages) {
		for (const { message: next } of message.fields) {
			if (next !== undefined) {
				messages.add(next);
			}
		}
	}
	return messages;
}

/** A message with one field and one rule on it. */
interface Probe {
	/** Whether it is a rule of a message or of a field. */
	readonly of: "message" | "field";
	/** The name of that message or field. */
	readonly place: string;
	readonly message: DescriptorProto;
}

function problemsOf(message: DescMessage, validator: Validator): readonly string[] {
	const problems = oneofProblems(message);
	const probes = [...messageProbes(message), ...message.fields.flatMap(fieldProbes)];
	if (probes.length === 0) {
		return problems;
	}
	const byName = new Map(probes.map((probe, at) => [`Probe${at}`, probe]));
	const file = fileOfProbes(message.file, probes);
	for (const descriptor of file.messages) {
		const probe = byName.get(descriptor.name);
		const problem = probe && problemOf(descriptor, probe.of, validator);
		if (problem !== undefined) {
			problems.push(`${probe?.place}: ${problem}`);
		}
	}
	return [...new Set(problems)];
}

/** Checks `(buf.validate.message).oneof`, which names fields of the message. */
function oneofProblems(message: DescMessage): string[] {
	return getOption(message, messageRules).oneof.flatMap(({ fields }) => {
		const rule = `${message}: (buf.validate.message).oneof`;
		const missing = fields.filter((name) => !message.fields.some((field) => field.name === name));
		return [
			...(fields.length === 0 ? [`${rule} names no field`] : []),
			...(new Set(fields).size < fields.length ? [`${rule} names a field twice`] : []),
			...missing.map((name) => `${rule} names "${name}", which is not a field of the message`),
		];
	});
}

/** One probe per CEL rule of a message: a copy of the message whose fields have no rules. */
function messageProbes(message: DescMessage): Probe[] {
	const { cel, celExpression } = getOption(message, messageRules);
	return [
		...cel.map((rule) => create(MessageRulesSchema, { cel: [rule] })),
		...celExpression.map((rule) => create(MessageRulesSchema, { celExpression: [rule] })),
	].map((rules) => {
		const options = create(MessageOptionsSchema);
		setExtension(options, messageRules, rules);
		const { field, oneofDecl, nestedType } = message.proto;
		const copy = create(DescriptorProtoSchema, {
			options,
			field: field.map(withoutRules),
			oneofDecl: oneofDecl.map(({ name }) => ({ name })),
			nestedType: nestedType
				.filter((each) => each.options?.mapEntry)
				.map((each) => clone(DescriptorProtoSchema, each)),
		});
		return { of: "message", place: String(message), message: copy };
	});
}

function withoutRules(field: FieldDescriptorProto): FieldDescriptorProto {
	const copy = clone(FieldDescriptorProtoSchema, field);
	copy.options = featuresOf(field);
	return copy;
}

/** The options of a field that affect its encoding. */
function featuresOf({ options }: FieldDescriptorProto): FieldOptions {
	return create(FieldOptionsSchema, options?.features && { features: options.features });
}

/** The probes of a field: one per CEL rule, and one for all other rules. */
function fieldProbes(field: DescField): Probe[] {
	if (
		!hasOption(field, fieldRules) ||
		field.proto.type === FieldDescriptorProto_Type.GROUP ||
		field.kind !== "field"
	) {
		return [];
	}
	const place = String(field);
	const entry = entryOf(field);
	const rules = getOption(field, fieldRules);
	const standard = clone(FieldRulesSchema, rules);
	standard.cel = [];
	standard.celExpression = [];
	return [
		standard,
		...rules.cel.map((rule) => create(FieldRulesSchema, { cel: [rule] })),
		...rules.celExpression.map((rule) => create(FieldRulesSchema, { celExpression: [rule] })),
	].map((each) => ({ of: "field", place, message: messageWith(field.proto, each, entry) }));
}

/** The entry message of a map field. It is nested in the message that has the field. */
function entryOf(field: DescField): DescriptorProto | undefined {
	return field.fieldKind === "map"
		? field.parent.proto.nestedType.find(({ name }) => field.proto.typeName.endsWith(`.${name}`))
		: undefined;
}

function messageWith(
	field: FieldDescriptorProto,
	rules: FieldRules,
	entry?: DescriptorProto,
): DescriptorProto {
	const options = featuresOf(field);
	setExtension(options, fieldRules, rules);
	const { name, jsonName, number, label, type, typeName } = field;
	return create(DescriptorProtoSchema, {
		field: [{ name, jsonName, number, label, type, typeName, options }],
		...(entry && { nestedType: [clone(DescriptorProtoSchema, entry)] }),
	});
}

/** A file of messages `Probe0`, `Probe1`, … with the imports of the given file. */
function fileOfProbes(of: DescFile, probes: readonly Probe[]): DescFile {
	const files = [...new Set([...filesOf(of), ...filesOf(file_buf_validate_validate)])];
	const pack = `plinth.probes.${of.name.replaceAll(/[^A-Za-z0-9]/g, "_")}.${counter++}`.replaceAll(
		/\.(\d)/g,
		".p$1",
	);
	const name = `${pack}.proto`;
	const file = create(FileDescriptorProtoSchema, {
		name,
		package: pack,
		syntax: of.proto.syntax,
		edition: of.proto.edition,
		dependency: files.map(({ proto }) => proto.name),
		messageType: probes.map(({ message }, at) => named(message, `Probe${at}`, pack)),
	});
	const byName = new Map(files.map((each) => [each.proto.name, each]));
	const found = createFileRegistry(file, (dependency) => byName.get(dependency)).getFile(name);
	if (found === undefined) {
		throw new Error(`the descriptors of ${name} can't be built`);
	}
	return found;
}

let counter = 0;

/** Names the message, and makes its map fields refer to its own entry messages. */
function named(message: DescriptorProto, name: string, pack: string): DescriptorProto {
	message.name = name;
	for (const field of message.field) {
		const entry = message.nestedType.find((each) => field.typeName.endsWith(`.${each.name}`));
		if (entry !== undefined) {
			field.typeName = `.${pack}.${name}.${entry.name}`;
		}
	}
	return message;
}

/** Errors of the rule itself, regardless of the message. */
const invalidRule =
	/^(field not found|unresolved attribute|unbound function|error parsing regexp)|wanted either bool or string$/;

/** An operator that is not defined for its operands. Null is the value of a field that a sample can't set. */
const invalidOperands = /^found no matching overload(?!.*\bnull\b)/;

function problemOf(
	probe: DescMessage,
	place: Probe["of"],
	validator: Validator,
): string | undefined {
	const [onEmpty, onFull] = [create(probe), sampleOf(probe)].map((message) => {
		const result = validator.validate(probe, message);
		return result.kind === "error" ? result.error : undefined;
	});
	const error = [onEmpty, onFull].find((each) => each !== undefined && isWrong(each, place));
	const found = error ?? (invalidOperands.test(onFull?.message ?? "") ? onFull : undefined);
	return found && found.message.replace(/ on field plinth\.probes\.\S+/, "") + expressionOf(probe);
}

function isWrong(error: Error, of: Probe["of"]): boolean {
	return error.name === "CompilationError"
		? // With the rule of a message, the rules of nested messages are compiled too. Those have their own probes.
			of === "field" || error.message.startsWith("failed to compile")
		: invalidRule.test(error.message);
}

/** The expression of the probe's rule, because not all errors contain it. */
function expressionOf(probe: DescMessage): string {
	const [field] = probe.fields;
	const expressions = [
		getOption(probe, messageRules),
		field && getOption(field, fieldRules),
	].flatMap((rules) => [
		...(rules?.cel ?? []).map((rule) => rule.expression),
		...(rules?.celExpression ?? []),
	]);
	const [expression] = expressions;
	return expression === undefined ? "" : `, in the rule "${expression}"`;
}
