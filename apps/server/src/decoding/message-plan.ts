import { type DescField, type DescMessage, type Registry, ScalarType } from "@bufbuild/protobuf";

/** How a field's value is laid out on the wire, as the decoder reads it. */
export const Layout = {
	/** A varint of at most 10 bytes. */
	varint: 0,
	fixed32: 1,
	fixed64: 2,
	/** A length, then that many bytes that are not decoded any further. */
	bytes: 3,
	/** A length, then a message. */
	message: 4,
	/** A message up to its end tag. */
	group: 5,
} as const;

export type Layout = (typeof Layout)[keyof typeof Layout];

/** The properties of a field that the scan needs. */
export interface FieldPlan {
	readonly layout: Layout;
	/** Whether a length-delimited record of the field holds many elements. */
	readonly isPackable: boolean;
	/** Of a message, group or map entry; `undefined` for scalars. */
	readonly child: MessagePlan | undefined;
	/**
	 * A bit that identifies the field in its message, if a second record merges into the first and the field can
	 * contain an Any; 0 otherwise. Fields after the 31st share the last bit.
	 */
	readonly mergeBit: number;
}

/** The properties of a message that the scan needs: the decoder's view of its descriptor. */
export interface MessagePlan {
	readonly fields: ReadonlyMap<number, FieldPlan>;
	readonly isAny: boolean;
	/** The decoder does not treat map entries as messages: they do not count as a level of nesting. */
	readonly isMapEntry: boolean;
}

const anyTypeName = "google.protobuf.Any";
const fieldMaskTypeName = "google.protobuf.FieldMask";

/** Compiles plans on first use, one per message, so that recursive messages end. */
export class MessagePlans {
	readonly #registry: Registry;
	readonly #plans = new Map<DescMessage, MessagePlan>();
	readonly #named = new Map<string, MessagePlan>();

	/** @param registry messages that an Any may contain. Others are not decoded. */
	constructor(registry: Registry) {
		this.#registry = registry;
	}

	of(message: DescMessage): MessagePlan {
		return this.#plans.get(message) ?? this.#compile(message);
	}

	/** The plan of the message in an Any of this type URL, or `undefined` if it is unknown. */
	ofTypeUrl(url: string): MessagePlan | undefined {
		const name = url.slice(url.lastIndexOf("/") + 1);
		const known = this.#named.get(name);
		if (known !== undefined) {
			return known;
		}
		const message = this.#registry.getMessage(name);
		if (message === undefined) {
			return undefined;
		}
		const plan = this.of(message);
		this.#named.set(name, plan);
		return plan;
	}

	/** Whether JSON of this message can contain a field mask, which is many paths in one string. */
	mayHoldFieldMask(message: DescMessage): boolean {
		const isFieldMask = ({ typeName }: DescMessage) => typeName === fieldMaskTypeName;
		const isAny = ({ typeName }: DescMessage) => typeName === anyTypeName;
		return (
			reaches(message, isFieldMask) ||
			(reaches(message, isAny) &&
				[...this.#registry].some((desc) => desc.kind === "message" && reaches(desc, isFieldMask)))
		);
	}

	#compile(message: DescMessage): MessagePlan {
		const fields = new Map<number, FieldPlan>();
		const plan = { fields, isAny: message.typeName === anyTypeName, isMapEntry: false };
		this.#plans.set(message, plan);
		let merged = 0;
		for (const field of message.fields) {
			const merges = field.fieldKind === "message" && holdsAny(field.message);
			fields.set(field.number, this.#field(field, merges ? mergeBit(merged++) : 0));
		}
		return plan;
	}

	#field(field: DescField, bit: number): FieldPlan {
		switch (field.fieldKind) {
			case "scalar":
				return scalar(field.scalar);
			case "enum":
				return scalar(ScalarType.INT32);
			case "message":
				return this.#message(field.message, field.delimitedEncoding, bit);
			case "list":
				if (field.listKind === "message") {
					return this.#message(field.message, field.delimitedEncoding, 0);
				}
				return packable(scalar(field.listKind === "enum" ? ScalarType.INT32 : field.scalar));
			case "map": {
				const value =
					field.mapKind === "message"
						? this.#message(field.message, false, holdsAny(field.message) ? mergeBit(0) : 0)
						: scalar(field.mapKind === "enum" ? ScalarType.INT32 : field.scalar);
				const fields = new Map([
					[1, scalar(field.mapKey)],
					[2, value],
				]);
				const child = { fields, isAny: false, isMapEntry: true };
				return { layout: Layout.message, isPackable: false, child, mergeBit: 0 };
			}
		}
	}

	#message(message: DescMessage, isGroup: boolean, bit: number): FieldPlan {
		const layout = isGroup ? Layout.group : Layout.message;
		return { layout, isPackable: false, child: this.of(message), mergeBit: bit };
	}
}

function mergeBit(ordinal: number): number {
	return 1 << Math.min(ordinal, 30);
}

function packable(plan: FieldPlan): FieldPlan {
	return { ...plan, isPackable: plan.layout !== Layout.bytes };
}

function scalar(type: ScalarType): FieldPlan {
	return { layout: layoutOf(type), isPackable: false, child: undefined, mergeBit: 0 };
}

function layoutOf(type: ScalarType): Layout {
	switch (type) {
		case ScalarType.STRING:
		case ScalarType.BYTES:
			return Layout.bytes;
		case ScalarType.FLOAT:
		case ScalarType.FIXED32:
		case ScalarType.SFIXED32:
			return Layout.fixed32;
		case ScalarType.DOUBLE:
		case ScalarType.FIXED64:
		case ScalarType.SFIXED64:
			return Layout.fixed64;
		default:
			return Layout.varint;
	}
}

function holdsAny(message: DescMessage): boolean {
	return reaches(message, ({ typeName }) => typeName === anyTypeName);
}

/** Whether the message, or one that it can contain at any depth, matches. */
function reaches(message: DescMessage, matches: (message: DescMessage) => boolean): boolean {
	const seen = new Set([message]);
	for (const each of seen) {
		if (matches(each)) {
			return true;
		}
		for (const { message: child } of each.fields) {
			if (child !== undefined) {
				seen.add(child);
			}
		}
	}
	return false;
}
