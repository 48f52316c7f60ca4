import type { DescMessage, MessageShape } from "@bufbuild/protobuf";

/** The messages that a streaming call sends: `one` if its method takes a single message. */
export type RequestMessages<I extends DescMessage = DescMessage> =
	| { readonly kind: "one"; readonly message: MessageShape<I> }
	| { readonly kind: "many"; readonly messages: AsyncIterable<MessageShape<I>> };
