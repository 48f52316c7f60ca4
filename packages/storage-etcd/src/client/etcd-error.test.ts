import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { NoResponse } from "./deadline.ts";
import { EtcdError, etcdError, mayHaveApplied, RevisionCompacted } from "./etcd-error.ts";

describe("errors of etcd", () => {
	it.each([
		["etcdserver: request is too large", Code.InvalidArgument, "refused"],
		["etcdserver: mvcc: database space exceeded", Code.ResourceExhausted, "refused"],
		["etcdserver: permission denied", Code.PermissionDenied, "refused"],
		["grpc: received message larger than max", Code.ResourceExhausted, "refused"],
		["etcdserver: invalid auth token", Code.Unauthenticated, "not-done"],
		["etcdserver: no leader", Code.Unavailable, "not-done"],
		["etcdserver: request timed out", Code.Unavailable, "unknown"],
		["etcdserver: leader changed", Code.Unavailable, "unknown"],
		["http/2 stream closed with error code ENHANCE_YOUR_CALM", Code.ResourceExhausted, "unknown"],
		["read ECONNRESET", Code.Aborted, "unknown"],
	])("of a request that was sent: %s", (message, code, outcome) => {
		expect(etcdError(new ConnectError(message, code))).toMatchObject({ outcome });
	});

	it("of an etcd over its quota say what to do, and prove nothing", () => {
		const message = "etcdserver: mvcc: database space exceeded";
		const error = etcdError(new ConnectError(message, Code.ResourceExhausted));
		expect(error instanceof EtcdError && mayHaveApplied(error)).toBe(true);
		expect(error.message).toMatch(
			/^etcd: etcdserver: mvcc: database space exceeded: .*defragmented/,
		);
	});

	it("of what is no error of a call leave open what became of it", () => {
		const error = etcdError(new Error("the socket is closed"));
		expect(error).toBeInstanceOf(EtcdError);
		expect(error).toMatchObject({ outcome: "unknown", code: Code.Unknown });
		const late = etcdError(new NoResponse(5_000));
		expect(late).toMatchObject({ outcome: "unknown", code: Code.DeadlineExceeded });
	});

	it("of a revision that is gone are of their own kind", () => {
		const message = "etcdserver: mvcc: required revision has been compacted";
		expect(etcdError(new ConnectError(message, Code.OutOfRange))).toBeInstanceOf(RevisionCompacted);
	});
});
