import { assertWellFormedType, type TypeLike } from "@plinth/resource";
import { BadValue } from "../../configuration/setting.ts";

/** The name of a type, such as `music.v1.Artist`. @throws BadValue. */
export function typeName(value: string): TypeLike {
	const [group = "", groupVersion = "", kind = "", ...others] = value.split(".");
	const type = { group, groupVersion, kind };
	try {
		assertWellFormedType(type);
	} catch {
		throw notAType();
	}
	if (others.length > 0) {
		throw notAType();
	}
	return type;
}

function notAType(): BadValue {
	return new BadValue("is not the name of a type, such as music.v1.Artist");
}
