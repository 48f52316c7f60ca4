import type { DatabaseSync } from "node:sqlite";
import { identityTable, writeIdentity } from "./identity.ts";

/** What migrations may need to know. */
export interface MigrationContext {
	/** Two fresh ULIDs: the identity of a storage that has none yet. */
	readonly fresh: FreshIds;
}

/** The ids of a storage that is made, or of an incarnation. Drawn by who has a source of randomness. */
export interface FreshIds {
	readonly uid: string;
	readonly incarnation: string;
}

/** A step from one version of the schema to the next. Runs in its own transaction. */
export type Migration = (database: DatabaseSync, context: MigrationContext) => void;

/**
 * The steps, in their order: the first leads from version 1 to 2. Never changed once it was
 * released, since files of all versions must end up the same; a new version is a new step at the end.
 *
 * Versions 1 and 2 have the same rows and the same head, so that a file is checked whole before its
 * migration. A step that changes these needs a check of its own version of them.
 */
export const migrations: readonly Migration[] = [
	function addIdentity(database, { fresh }) {
		database.exec(identityTable);
		writeIdentity(database, { ...fresh, restores: 0 });
	},
];

/** The schema that this code reads and writes; it grows by one with each migration. */
export const schemaVersion = migrations.length + 1;

/**
 * Takes a database through the steps that it lacks, each in one transaction together with the version
 * that it leads to: a kill at any instant leaves a whole version, from where the next start goes on.
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

/** The version of a database's schema, with what is in its write-ahead log. */
export function versionOf(database: DatabaseSync): number {
	return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}
