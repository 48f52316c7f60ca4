import {
	isReflectList,
	isReflectMap,
	isReflectMessage,
	type ReflectMessage,
	reflect,
} from "@bufbuild/protobuf/reflect";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type ReportControllersRequest,
	ReportControllersRequestSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { maxKeys } from "../manager/controller-messages.ts";

const maxControllers = 100;

const idForm = /^[\w-]{16,64}$/;

const nameForm = /^[A-Za-z0-9._:/-]{1,100}$/;

/** Names of controllers, types and watches, and keys of resources. */
const textForm = /^[^\p{Cc}]{1,1000}$/u;

/** Errors may have several lines. Servers cut theirs after 1,000 characters. */
const maxTextLength = 4_000;

/**
 * What a report may contain: the sums over all agents must fit into the messages of responses, so that no report can break
 * them. Seconds are those of 30 years, and of the year 2100.
 */
const limits = {
	count: 2 ** 25,
	bigCount: 2n ** 53n,
	durationSeconds: 1_000_000_000n,
	timestampSeconds: 4_102_444_800n,
} as const;

/** Checks the report of an agent. @throws ConnectError InvalidArgument that names the field. */
export function checkReport(request: ReportControllersRequest): void {
	const { id, name, controllers } = request;
	require(idForm.test(id), "id", "must have 16 to 64 letters, digits, - and _");
	require(nameForm.test(name), "name", "must have 1 to 100 letters, digits and - . _ : /");
	require(controllers.length <= maxControllers, "controllers", `has more than ${maxControllers}`);
	const names = new Set<string>();
	for (const { controller, failing, running } of controllers) {
		require(controller !== undefined, "controllers", "has an entry without a controller");
		require(textForm.test(controller?.name ?? ""), "controllers", "has a name that is malformed");
		require(!names.has(controller?.name ?? ""), "controllers", "has two of the same name");
		names.add(controller?.name ?? "");
		const keys = Math.max(failing.length, running.length, controller?.overdue.length ?? 0);
		require(keys <= maxKeys, "controllers", `has more than ${maxKeys} keys of one kind`);
	}
	checkMessage(reflect(ReportControllersRequestSchema, request), "");
}

function require(isValid: boolean, field: string, problem: string): void {
	if (!isValid) {
		throw new ConnectError(`${field} ${problem}`, Code.InvalidArgument);
	}
}

function checkMessage(message: ReflectMessage, path: string): void {
	const { typeName } = message.desc;
	if (typeName === DurationSchema.typeName || typeName === TimestampSchema.typeName) {
		checkTime(message, path);
		return;
	}
	for (const field of message.fields) {
		const value: unknown = message.isSet(field) ? message.get(field) : undefined;
		const at = path === "" ? field.name : `${path}.${field.name}`;
		if (field.fieldKind === "enum") {
			const isKnown = value === undefined || field.enum.value[Number(value)] !== undefined;
			require(isKnown, at, "has an unknown value");
		} else if (isReflectList(value)) {
			for (const item of value) {
				checkValue(item, at);
			}
		} else if (isReflectMap(value)) {
			for (const [key, item] of value) {
				checkValue(key, at);
				checkValue(item, at);
			}
		} else {
			checkValue(value, at);
		}
	}
}

function checkValue(value: unknown, path: string): void {
	if (isReflectMessage(value)) {
		checkMessage(value, path);
	} else if (typeof value === "string") {
		require(value.length <= maxTextLength, path, `has more than ${maxTextLength} characters`);
	} else if (typeof value === "number") {
		require(value >= 0 && value <= limits.count, path, `is not from 0 to ${limits.count}`);
	} else if (typeof value === "bigint") {
		require(value >= 0n && value <= limits.bigCount, path, `is not from 0 to ${limits.bigCount}`);
	}
}

function checkTime({ desc, message }: ReflectMessage, path: string): void {
	const { seconds, nanos } = message as unknown as {
		readonly seconds: bigint;
		readonly nanos: number;
	};
	const most =
		desc.typeName === DurationSchema.typeName ? limits.durationSeconds : limits.timestampSeconds;
	const isValid = seconds >= 0n && seconds <= most && nanos >= 0 && nanos < 1_000_000_000;
	require(isValid, path, `is not from 0 to ${most} s`);
}
