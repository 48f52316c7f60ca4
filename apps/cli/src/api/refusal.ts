import { Code, type ConnectError } from "@connectrpc/connect";

/** Whether another attempt would fail in the same way. */
export function isRefusal({ code }: ConnectError): boolean {
	return [
		...[Code.Unauthenticated, Code.PermissionDenied, Code.InvalidArgument],
		...[Code.Unimplemented, Code.NotFound],
	].includes(code);
}
