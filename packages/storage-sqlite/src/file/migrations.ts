import type { DatabaseSync } from "node:sqlite";
import { identityTable, writeIdentity } from "./identity.ts";

/** The context of migrations. */
export interface MigrationContext {
	/** The identity of a storage that has none yet. */
	readonly fresh: FreshIds;
}

/** Two new ULIDs, for a new storage or a new incarnation. */
export interface FreshIds {
	readonly uid: string;
	readonly incarnation: string;
}

/** A step from one version of the schema to the next, in its own transaction. */
export type Migration = (database: DatabaseSync, context: MigrationContext) => void;

/**
 * The steps in order: the first leads from version 1 to 2. A released step never changes, since files of
 * all versions must end up the same; a new version is a new step at the end.
 *
 * Versions 1 and 2 have the same rows and the same head, so that a file can be checked completely before its
 * migration. A step that changes these needs a check for the old version.
 */
export const migrations: readonly Migration[] = [
	function addIdentity(database, { fresh }) {
		database.exec(identityTable);
		writeIdentity(database, { ...fresh, restores: 0 });
	},
];

/** The schema version that this code reads and writes; one more with each migration. */
export const schemaVersion = migrations.length + 1;

/**
 * Runs the missing steps on a database, each in one transaction together with the new version number: a kill
 * at any instant leaves a consistent version, from which the next start continues.
 */
export function migrate(
	database: DatabaseSync,
	context: MigrationContext,
	steps: readonly Migration[] = migrations,
): void {
	for (const [index, step] of steps.entries()) {
		const version = index + 2;
		database.exec("BEGIN IMMEDIATE");
		try {
			if (versionOf(database) === version - 1) {
				step(database, context);
				database.exec(`PRAGMA user_version = ${version}`);
			}
			database.exec("COMMIT");
		} catch (error) {
			if (database.isTransaction) {
				database.exec("ROLLBACK");
			}
			throw error;
		}
	}
}

/** The schema version of a database, including its write-ahead log. */
export function versionOf(database: DatabaseSync): number {
	return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}
