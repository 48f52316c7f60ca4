import { create } from "@bufbuild/protobuf";
import { type ID, IDSchema } from "@plinth/proto";
import type { EventRecord } from "@plinth/resource";

/** The ID of an artist. */
export function artist(name: string, uid = `uid-of-${name}`, namespace = "default"): ID {
	return create(IDSchema, {
		...{ uid, name },
		type: { group: "demo", groupVersion: "v2", kind: "Artist" },
		tenancy: { partition: "default", namespace },
	});
}

/** An event of an artist. */
export function happened(name: string, init: Partial<EventRecord> = {}): EventRecord {
	return {
		resource: artist(name),
		...{ reason: "Booked", message: `${name} was booked`, source: "booking" },
		...init,
	};
}
