import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";

/** A resource with its data decoded. */
export interface Decoded<Desc extends DescMessage = DescMessage> {
	readonly resource: Resource;
	readonly data: MessageShape<Desc>;
}
