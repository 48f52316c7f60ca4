export {
	compileCompleteDecoder,
	compileDecoder,
	type Decoder,
	type DecoderOptions,
} from "./compile-decoder.ts";
export { compileEncoder, type EncodeOptions, type Encoder } from "./compile-encoder.ts";
