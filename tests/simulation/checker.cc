#include "tests/simulation/checker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace assay::simulation {

void Checker::Fail(const std::string& what) {
  violations_.push_back(absl::StrCat("t=", absl::FormatDuration(now_()), " ", what));
}

void Checker::SetFinal(const std::string& evaluation, Books* books, v1::State state) {
  if (books->final_state != v1::STATE_UNSPECIFIED) {
    Fail(absl::StrCat(evaluation, " became ", v1::State_Name(state), " after ",
                      v1::State_Name(books->final_state)));
  }
  books->final_state = state;
}

void Checker::OnCreated(const v1::Evaluation& evaluation) { books_[evaluation.name()]; }

void Checker::OnLease(const LeaseGrant& grant, const absl::Status& result, v1::State before) {
  Trace("disk: lease ", grant.fence, " on ", grant.evaluation, " to ", grant.worker, ": ",
        result.ToString());
  Books& books = books_[grant.evaluation];
  if (absl::IsAborted(result)) {
    // The store is the last wall; a coordinator that leans on it is wrong all the same.
    const bool finished = books.final_state != v1::STATE_UNSPECIFIED;
    if (!finished && !books.doubtful) {
      Fail(absl::StrCat("asked for lease ", grant.fence, " on ", grant.evaluation, " which is ",
                        v1::State_Name(before), " under fence ", books.fence));
    }
    return;
  }
  if (!result.ok()) return;
  if (grant.fence <= books.fence) {
    Fail(absl::StrCat("fence of ", grant.evaluation, " went from ", books.fence, " to ",
                      grant.fence));
  }
  if (grant.attempt != books.ended + 1 || grant.attempt > AttemptsMax(books)) {
    Fail(absl::StrCat("attempt ", grant.attempt, " of ", grant.evaluation, " after ", books.ended,
                      " ended ones; the limit is ", AttemptsMax(books)));
  }
  if (books.told_until > now_()) {
    Fail(absl::StrCat("lease ", grant.fence, " on ", grant.evaluation, " granted to ", grant.worker,
                      " while ", books.told_worker, " holds ", books.told_fence, " until ",
                      absl::FormatDuration(books.told_until)));
  }
  books.fence = grant.fence;
  books.owners[grant.fence] = grant.worker;
  if (!books.first_worker.empty()) {
    ++(books.first_worker == grant.worker ? same_worker_count_ : elsewhere_count_);
  }
}

void Checker::OnCompletion(const Completion& completion, const absl::Status& result,
                           bool already_recorded) {
  Trace("disk: completion of ", completion.evaluation, " under ", completion.fence, ": ",
        result.ToString());
  if (!result.ok()) return;
  Books& books = books_[completion.evaluation];
  if (completion.fence != books.fence) {
    Fail(absl::StrCat("completion of ", completion.evaluation, " under stale fence ",
                      completion.fence, ", current ", books.fence));
  }
  if (already_recorded) return;
  if (++books.results > 1) Fail(absl::StrCat("two results of ", completion.evaluation));
  books.result_fence = completion.fence;
  books.told_until = -absl::InfiniteDuration();
  SetFinal(completion.evaluation, &books, v1::SUCCEEDED);
}

void Checker::OnConfirmation(const Completion& completion, const v1::Evaluation& confirmation) {
  Trace("disk: second run ", confirmation.name());
  const Books first = books_[completion.evaluation];
  if (first.results != 1 || first.result_fence != completion.fence) {
    Fail(absl::StrCat(confirmation.name(), " made without a result of ", completion.evaluation));
  }
  if (!first.first_worker.empty()) {
    Fail(absl::StrCat(confirmation.name(), " is the second run of a second run"));
  }
  if (confirmation.confirms() != completion.evaluation || books_.count(confirmation.name()) != 0) {
    Fail(absl::StrCat(completion.evaluation, " has two second runs"));
  }
  const auto owner = first.owners.find(completion.fence);
  books_[confirmation.name()].first_worker = owner == first.owners.end() ? "?" : owner->second;
}

void Checker::OnAttemptEnd(const AttemptEnd& end, const absl::Status& result, v1::State before) {
  Trace("disk: end of ", end.evaluation, " under ", end.fence, " ", end.error.reason(), ": ",
        result.ToString());
  Books& books = books_[end.evaluation];
  if (absl::IsAborted(result)) {
    if (books.final_state != v1::CANCELLED && !books.doubtful) {
      Fail(absl::StrCat("ended lease ", end.fence, " of ", end.evaluation, " which is ",
                        v1::State_Name(before), " under fence ", books.fence));
    }
    return;
  }
  if (!result.ok()) return;
  if (end.fence != books.fence) {
    Fail(absl::StrCat("attempt of ", end.evaluation, " ended under stale fence ", end.fence,
                      ", current ", books.fence));
  }
  if (!end.error.code().empty()) ++books.ended;
  if (end.final != (books.ended >= AttemptsMax(books))) {
    Fail(absl::StrCat(end.evaluation, end.final ? " failed" : " goes on", " after ", books.ended,
                      " counted attempts; the limit is ", AttemptsMax(books)));
  }
  if (end.final) SetFinal(end.evaluation, &books, v1::FAILED);
}

void Checker::OnCancel(const std::string& evaluation, const absl::Status& result) {
  Trace("disk: cancellation of ", evaluation, ": ", result.ToString());
  if (!result.ok()) return;
  Books& books = books_[evaluation];
  books.told_until = -absl::InfiniteDuration();
  SetFinal(evaluation, &books, v1::CANCELLED);
}

void Checker::Tell(const std::string& evaluation, int64_t fence, const std::string& worker,
                   absl::Duration duration) {
  Trace(worker, " is told of lease ", fence, " on ", evaluation, " for ",
        absl::FormatDuration(duration));
  Books& books = books_[evaluation];
  if (books.told_until > now_() && books.told_fence != fence) {
    Fail(absl::StrCat(worker, " told of lease ", fence, " on ", evaluation, " while ",
                      books.told_worker, " holds ", books.told_fence));
  }
  if (fence != books.fence) {
    Fail(absl::StrCat(worker, " told of lease ", fence, " on ", evaluation,
                      " that is not durable or stale; the durable fence is ", books.fence));
  }
  if (books.owners[fence] != worker) {
    Fail(absl::StrCat(worker, " told of lease ", fence, " on ", evaluation, " of ",
                      books.owners[fence]));
  }
  if (books.final_state != v1::STATE_UNSPECIFIED) return;  // it was final on the way
  if (fence <= books.given_up_fence) return;               // a late renewal; nobody works on it
  books.told_fence = fence;
  books.told_worker = worker;
  books.told_until = now_() + duration;
}

void Checker::OnLeaseAnswered(const std::string& evaluation, int64_t fence, int attempt,
                              const std::string& worker, absl::Duration duration) {
  if (attempt > AttemptsMax(books_[evaluation])) {
    Fail(absl::StrCat(evaluation, " handed out as attempt ", attempt));
  }
  Tell(evaluation, fence, worker, duration);
}

void Checker::OnRenewed(const std::string& evaluation, int64_t fence, const std::string& worker,
                        absl::Duration duration) {
  if (books_[evaluation].final_state != v1::STATE_UNSPECIFIED && !books_[evaluation].doubtful) {
    Fail(absl::StrCat(worker, " renewed lease ", fence, " on ", evaluation, " which is ",
                      v1::State_Name(books_[evaluation].final_state)));
  }
  Tell(evaluation, fence, worker, duration);
}

void Checker::OnCompleteAcknowledged(const std::string& evaluation, int64_t fence) {
  const Books& books = books_[evaluation];
  if (books.results != 1 || books.result_fence != fence) {
    Fail(absl::StrCat("completion of ", evaluation, " with fence ", fence,
                      " acknowledged, but the store has ", books.results, " results, fence ",
                      books.result_fence));
  }
}

void Checker::OnGivenUp(const std::string& evaluation, int64_t fence) {
  Books& books = books_[evaluation];
  books.given_up_fence = std::max(books.given_up_fence, fence);
  if (books.told_fence == fence) books.told_until = -absl::InfiniteDuration();
}

void Checker::OnRegistered(const std::string& worker, const std::map<std::string, int64_t>& kept,
                           absl::Duration lease_duration, absl::Duration orphan_grace) {
  for (auto& [evaluation, books] : books_) {
    auto it = kept.find(evaluation);
    if (it != kept.end()) {
      Tell(evaluation, it->second, worker, lease_duration);
    } else if (books.told_worker == worker) {
      books.told_until = std::min(books.told_until, now_() + orphan_grace);
    }
  }
}

void Checker::OnObserved(const v1::Evaluation& evaluation) {
  const v1::State state = evaluation.state();
  if (state != v1::SUCCEEDED && state != v1::FAILED && state != v1::CANCELLED) return;
  Books& books = books_[evaluation.name()];
  if (state != books.final_state) {
    Fail(absl::StrCat(evaluation.name(), " observed as ", v1::State_Name(state), ", stored as ",
                      v1::State_Name(books.final_state)));
  }
}

void Checker::OnCreateAcknowledged(const std::string& evaluation) {
  if (books_.count(evaluation) == 0) {
    Fail(absl::StrCat(evaluation, " acknowledged and not durable"));
  }
  acknowledged_.insert(evaluation);
}

void Checker::CheckFinal(const std::string& evaluation, v1::State stored) {
  const Books& books = books_[evaluation];
  if (stored != books.final_state) {
    Fail(absl::StrCat(evaluation, " is ", v1::State_Name(stored), " at the end, was written as ",
                      v1::State_Name(books.final_state)));
  }
  const int wanted = stored == v1::SUCCEEDED ? 1 : 0;
  if (books.results != wanted) {
    Fail(absl::StrCat(evaluation, " is ", v1::State_Name(stored), " with ", books.results,
                      " results"));
  }
}

}  // namespace assay::simulation
