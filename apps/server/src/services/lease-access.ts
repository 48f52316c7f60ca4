import type { LeaseAccess } from "@plinth/leases";
import { type Access, denialOf, type TypeLike } from "@plinth/resource";
import { enforce } from "@plinth/resource-service";

/** The type that policies name to grant leases: `internal.v1.Lease`. The names are those of the leases. */
const leaseType: TypeLike = { group: "internal", groupVersion: "v1", kind: "Lease" };

/** The right to hold leases, and to see that they are held. */
const operatorLease = "operator:lease";

/** The rights of a caller on leases, by their names. */
export function leaseAccessOf(access: Access): LeaseAccess {
	const decide = (name: string) => access.check(operatorLease, { type: leaseType, name });
	return {
		require: (name) => enforce(decide(name)),
		mayHold: (name) => denialOf(decide(name)) === undefined,
		ended: access.ended,
	};
}
