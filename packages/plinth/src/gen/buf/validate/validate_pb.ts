export * from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
