import type { StoredIdentity } from "../file/identity.ts";
import type { FreshIds } from "../file/migrations.ts";

/** The parameters of a backup. */
export interface BackupOrder {
	/** The storage; see `realPathOf`. */
	readonly path: string;
	/** The name of the backup. */
	readonly to: string;
	/** The current time, in milliseconds since 1970. */
	readonly nowMs: number;
	/** New ids; one is part of the temporary name of the backup. */
	readonly fresh: FreshIds;
}

/** The temporary name of a backup. */
export function partialPath({ to, fresh }: Pick<BackupOrder, "to" | "fresh">): string {
	return `${to}.partial-${fresh.incarnation}`;
}

/** The identity of a backup of a storage. */
export function backupIdentity(
	of: StoredIdentity | undefined,
	{ fresh, nowMs }: Pick<BackupOrder, "fresh" | "nowMs">,
): StoredIdentity {
	return { ...(of ?? { ...fresh, restores: 0 }), backupMs: nowMs };
}
