import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { fieldOfPath } from "./field-of-path.ts";
import { type KeyLike, keyString } from "./resource-key.ts";

/** What distinguishes a reference from others of its resource, and its record from others of the shadow. */
export interface FieldAndTarget {
	/** For people: schemas may change the names in it. */
	readonly path: string;
	/** The path by the numbers of the fields; empty if only the names are known. */
	readonly field: string;
	readonly target?: KeyLike | undefined;
	/** The type that the reference names, if its field may not reference that type. */
	readonly wrongType?: string | undefined;
}

/** The field and the target in one string. The elements of a list or of a map are one field. */
export function nameOfField({ path, field, target, wrongType = "" }: FieldAndTarget): string {
	const isNumbered = field !== "" && !isPlanted("know fields by their names");
	const type = isPlanted("record wrong types as right ones") ? "" : wrongType;
	return `${targetOf({ target })} ${isNumbered ? field : fieldOfPath(path)} ${type}`;
}

/** The same of a record. */
export function nameOfRecord({ path, field, target, missing }: OutgoingReference): string {
	return nameOfField({ path, field, target, wrongType: missing?.wrongType });
}

/** The target of a reference, as `keyString`; empty if it has none. */
export function targetOf({ target }: { readonly target?: KeyLike | undefined }): string {
	return target === undefined ? "" : keyString(target);
}
