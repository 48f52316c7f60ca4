import type { BinaryReadOptions, BinaryWriteOptions } from "@bufbuild/protobuf";

/** How messages are encoded and decoded. */
export interface MessageOptions {
	readonly readMaxBytes: number;
	readonly writeMaxBytes: number;
	readonly binary: Partial<BinaryReadOptions & BinaryWriteOptions> | undefined;
}
