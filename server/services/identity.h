// When two evaluations are identical, so that the result of one answers the other: the same
// candidate, configuration, problem version, workloads, level and pair settings, judged by the same
// harness and compiler on the same instruction set and exact device class. Pure functions.
#ifndef ASSAY_SERVER_SERVICES_IDENTITY_H_
#define ASSAY_SERVER_SERVICES_IDENTITY_H_

#include <string>
#include <string_view>

namespace assay {

namespace v1 {
class Device;
class Environment;
class Evaluation;
class Problem;
}  // namespace v1

// True when `requested` ("cpu", or a whole class) takes this device.
bool DeviceMatches(std::string_view requested, const v1::Device& device);

// 64 hexadecimal digits, or "" (never answers another) when the environment leaves a part unsaid,
// or when `problem` is newer than the evaluation, because then the version that it ran against is
// not known for certain. `evaluation` is as admitted: configuration resolved, candidates by digest
// name.
std::string EvaluationIdentity(const v1::Evaluation& evaluation, const v1::Problem& problem,
                               const v1::Environment& environment, std::string_view device_class);

// Digest of what a client asked for, which `request_id` is bound to. `evaluation` is as admitted,
// without name and times; the resolved candidate names stand for inline candidates.
std::string RequestDigest(const v1::Evaluation& evaluation, bool allow_stored_answer);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_IDENTITY_H_
