import {
	type Content,
	type Key,
	keyOf,
	type ObservedResource,
	type Place,
} from "../history/history.ts";
import { type JsonObject, objectOf, objectsOf, textOf } from "./json.ts";
import { kindOf, kinds, placeOf } from "./places.ts";

const tenancy = { partition: "default", namespace: "default" };

/** The places of owners, by uid. */
export type Owners = ReadonlyMap<string, Place>;

/** The ID of a place in a request. */
export function idOf(place: Place): JsonObject {
	return { name: place.name, type: typeOf(place), tenancy };
}

/** The type of a place in a request. */
export function typeOf({ kind }: Pick<Place, "kind">): JsonObject {
	return { group: kinds[kind].group, groupVersion: "v1", kind };
}

/** A resource in a request. */
export function resourceOf(place: Place, content: Content, owners: Owners): JsonObject {
	const { group } = kinds[place.kind];
	const fields = Object.entries(content.references).map(([field, key]) => {
		return [field, referenceTo(placeAt(key), place)];
	});
	return {
		id: idOf(place),
		metadata: { note: content.note },
		data: {
			"@type": `type.googleapis.com/regions.${group}.v1.${place.kind}`,
			...Object.fromEntries(fields),
		},
		ownerReferences: content.owners.map((uid) => {
			const owner = owners.get(uid);
			if (owner === undefined) {
				throw new Error(`the place of the owner ${uid} is not known`);
			}
			return { ...idOf(owner), uid, region: owner.region };
		}),
	};
}

/** A resource in a response. */
export function seenOf(place: Place, resource: JsonObject): ObservedResource {
	const data = objectOf(resource.data);
	const metadata = objectOf(resource.metadata ?? {});
	const references = Object.entries(kinds[place.kind].fields).flatMap(([field, kind]) => {
		const found = data[field];
		if (found === undefined) {
			return [];
		}
		const { name, region } = objectOf(found);
		const target = { kind, name: textOf(name), region: textOf(region) || place.region };
		return [[field, keyOf(target)] as const];
	});
	return {
		uid: textOf(objectOf(resource.id).uid),
		marked: "deletionTimestamp" in metadata,
		note: textOf(metadata.note),
		references: Object.fromEntries(references),
		owners: objectsOf(resource.ownerReferences).map(({ uid }) => textOf(uid)),
	};
}

/** The place of a resource in a response of a region. */
export function placeOfResource(resource: JsonObject, region: string): Place {
	const { name, type } = objectOf(resource.id);
	return { kind: kindOf(textOf(objectOf(type).kind)), name: textOf(name), region };
}

function referenceTo(target: Place, from: Place): JsonObject {
	// The own region may be omitted, even for targets of another service.
	const region = target.region === from.region ? {} : { region: target.region };
	return { name: target.name, tenancy, ...region };
}

function placeAt(key: Key): Place {
	const place = placeOf.get(key);
	if (place === undefined) {
		throw new Error(`unknown key ${key}`);
	}
	return place;
}
