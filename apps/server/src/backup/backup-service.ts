import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
	type BackupResponse,
	BackupResponseSchema,
	type BackupService,
} from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
import type { Access, Authorizer, TypeLike } from "@plinth/resource";
import { authenticateCall, enforce } from "@plinth/resource-service";
import type { Clock, Logger } from "@plinth/runtime";
import { type CopyProgress, StorageFileError } from "@plinth/storage-sqlite";
import { auditStream } from "../operations/audit.ts";
import type { StorageCopies, StorageCopy } from "./storage-copies.ts";

/** The operation that is authorized, on `backupType`: no other right exposes the whole storage. */
const operatorBackup = "operator:backup";

/** The type that policies name to grant backups: `internal.v1.Backup`. */
const backupType: TypeLike = { group: "internal", groupVersion: "v1", kind: "Backup" };

/** How long a client may not read what is ready, in milliseconds: other backups wait for it. */
const stallLimitMs = 60_000;

/** Options of `createBackupService`. */
export interface BackupServiceOptions {
	readonly copies: StorageCopies;
	readonly authorizer: Authorizer;
	readonly clock: Clock;
	readonly logger: Logger;
}

/** Implements `plinth/backup/v1/backup_service.proto`: sends backups of the storage. */
export function createBackupService(
	options: BackupServiceOptions,
): ServiceImpl<typeof BackupService> {
	return {
		backup: (_request, call) => auditStream(options.logger, call, parts(options, call)),
	};
}

type Part = NonNullable<MessageInitShape<typeof BackupResponseSchema>["part"]>;

function response(part: Part): BackupResponse {
	return create(BackupResponseSchema, { part });
}

async function* parts(
	{ copies, authorizer, clock, logger }: BackupServiceOptions,
	call: HandlerContext,
): AsyncGenerator<BackupResponse> {
	const access = await authenticateCall(authorizer, call);
	requireBackup(access);
	if (copies.kind === "taken-elsewhere") {
		throw new ConnectError(copies.instead, Code.FailedPrecondition);
	}
	const end = new AbortController();
	const signal = AbortSignal.any([call.signal, end.signal, endOf(access, call)]);
	/** Yields a part, and ends the backup if the client does not read it in time. */
	async function* send(part: Part): AsyncGenerator<BackupResponse> {
		signal.throwIfAborted();
		const timer = clock.setTimer(stallLimitMs, () =>
			end.abort(
				new ConnectError("the client has read nothing for a minute", Code.DeadlineExceeded),
			),
		);
		try {
			yield response(part);
		} finally {
			timer.cancel();
		}
		signal.throwIfAborted();
	}

	const progress = new LatestProgress();
	const taking = copies
		.take({ signal, progress: (value) => progress.set(value) })
		.finally(() => progress.end());
	// Called on abort as well: if the client stops reading, the generator is not resumed.
	const release = async () => {
		const copy = await taking.catch(() => undefined);
		await copy?.[Symbol.asyncDispose]();
	};
	const onEnd = () => {
		release().catch((failure: unknown) => {
			logger.warn({ err: failure }, "the file of a backup could not be deleted");
		});
	};
	signal.addEventListener("abort", onEnd, { once: true });
	await using releasing = new AsyncDisposableStack();
	releasing.defer(() => {
		end.abort(new ConnectError("the stream has ended", Code.Canceled));
		return release();
	});
	for await (const { resources, total } of progress) {
		yield* send({
			case: "progress",
			value: { resources: BigInt(resources), of: BigInt(total) },
		});
	}
	const copy = await completed(taking);
	const { report, sizeBytes } = copy;
	yield* send({
		case: "taken",
		value: {
			version: report.version,
			resources: BigInt(report.resources),
			sizeBytes: BigInt(sizeBytes),
			storageUid: report.identity.uid,
		},
	});
	const hash = createHash("sha256");
	for await (const chunk of copy.chunks()) {
		hash.update(chunk);
		yield* send({ case: "chunk", value: chunk });
	}
	yield* send({ case: "checksum", value: { sha256: hash.digest() } });
}

/** The backup. @throws ConnectError if it could not be taken. */
async function completed(taking: Promise<StorageCopy>): Promise<StorageCopy> {
	try {
		return await taking;
	} catch (failure) {
		if (!(failure instanceof StorageFileError)) {
			throw failure;
		}
		const { problem, reason } = failure;
		const isExhausted = problem === "in-use" || problem === "disk-full";
		throw new ConnectError(
			`no backup was taken: ${reason}`,
			isExhausted
				? Code.ResourceExhausted
				: problem === "damaged"
					? Code.DataLoss
					: Code.Unavailable,
		);
	}
}

/** @throws ConnectError PermissionDenied. */
function requireBackup(access: Access): void {
	// A backup contains all names: a right to names with a prefix is not sufficient.
	enforce(access.check(operatorBackup, { type: backupType, name: "" }));
}

/** Aborts when the rights of the caller have ended or changed. */
function endOf({ ended: source }: Access, call: HandlerContext): AbortSignal {
	const ended = new AbortController();
	const end = () =>
		ended.abort(new ConnectError("the token is no longer valid", Code.Unauthenticated));
	if (source?.aborted) {
		end();
	}
	source?.addEventListener("abort", end, { once: true, signal: call.signal });
	return ended.signal;
}

/** The progress of a backup, for one reader, which may skip intermediate values. */
class LatestProgress {
	#latest: CopyProgress | undefined;
	#changed = Promise.withResolvers<void>();
	#ended = false;

	set(progress: CopyProgress): void {
		this.#latest = progress;
		this.#wake();
	}

	end(): void {
		this.#ended = true;
		this.#wake();
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<CopyProgress> {
		for (;;) {
			const latest = this.#latest;
			this.#latest = undefined;
			if (latest !== undefined) {
				yield latest;
			} else if (this.#ended) {
				return;
			} else {
				await this.#changed.promise;
			}
		}
	}

	#wake(): void {
		this.#changed.resolve();
		this.#changed = Promise.withResolvers();
	}
}
