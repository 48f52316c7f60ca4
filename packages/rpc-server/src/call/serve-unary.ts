import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import type { MethodImplSpec } from "@connectrpc/connect";
import { interceptUnary } from "@plinth/in-process";
import type { Serve, ServedCall } from "./served-call.ts";

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
type Output = MessageInitShape<DescMessage>;

/** Serves a unary method: calls the implementation, within the interceptors of its registration. */
export function serveUnary({ impl, method }: UnarySpec): Serve {
	const invoke = (call: ServedCall, message: Message): Promise<Output> | Output => {
		const { context, codec, interceptors } = call;
		return interceptors.length === 0
			? impl(message, context)
			: interceptUnary(interceptors, method, context, message, async (input, inner) =>
					codec.complete(await impl(input, inner)),
				);
	};
	const serve = async (call: ServedCall, message: Message): Promise<void> => {
		const { observed } = call;
		let output: Message;
		try {
			const result =
				observed?.run === undefined
					? invoke(call, message)
					: observed.run(() => invoke(call, message));
			output = call.codec.complete(await result);
		} catch (thrown) {
			call.failed(thrown);
			return;
		}
		call.succeed(output);
	};
	return (call, message) => void serve(call, message);
}
