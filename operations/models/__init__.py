"""Tables, constraints, and the only code that writes a status."""

from operations.models import collecting
from operations.models.account import Account, ApiKey
from operations.models.attempt import Attempt
from operations.models.audit import AuditEntry
from operations.models.backfill_run import BackfillRun, BackfillState
from operations.models.bulk import BulkResult, BulkRow, BulkRun, BulkState
from operations.models.claim import Claim
from operations.models.dispute import Dispute
from operations.models.evidence import Evidence, EvidenceSource
from operations.models.flag import Flag
from operations.models.grant import Grant
from operations.models.heartbeat import WORKER, Heartbeat
from operations.models.inbox import EventHandling, Handling, InboxItem
from operations.models.note import Note
from operations.models.notice import Delivery, DeliveryState, DeliveryTry, Subscription
from operations.models.operation import Operation, StaleOperation
from operations.models.orphan_event import OrphanEvent
from operations.models.outside import Discrepancy, MadeOutside
from operations.models.payment import Payment
from operations.models.policy import Policy, PolicyName
from operations.models.presence import Presence
from operations.models.proposal import Proposal
from operations.models.provider_refund import ProviderRefund
from operations.models.rate_bucket import RateBucket
from operations.models.refund_report import RefundReport
from operations.models.report_file import ReportFile, ReportPiece, ReportRow
from operations.models.request import Request, RequestToken
from operations.models.saved_view import SavedView
from operations.models.seal import AuditSeal
from operations.models.summary import HourCount, HourToSum, Measure, SummingState
from operations.models.user_settings import Theme, UserSettings
from operations.models.webhook_event import WebhookEvent

__all__ = [
    "WORKER",
    "Account",
    "ApiKey",
    "Attempt",
    "AuditEntry",
    "AuditSeal",
    "BackfillRun",
    "BackfillState",
    "BulkResult",
    "BulkRow",
    "BulkRun",
    "BulkState",
    "Claim",
    "Delivery",
    "DeliveryState",
    "DeliveryTry",
    "Discrepancy",
    "Dispute",
    "EventHandling",
    "Evidence",
    "EvidenceSource",
    "Flag",
    "Grant",
    "Handling",
    "Heartbeat",
    "HourCount",
    "HourToSum",
    "InboxItem",
    "MadeOutside",
    "Measure",
    "Note",
    "Operation",
    "OrphanEvent",
    "Payment",
    "Policy",
    "PolicyName",
    "Presence",
    "Proposal",
    "ProviderRefund",
    "RateBucket",
    "RefundReport",
    "ReportFile",
    "ReportPiece",
    "ReportRow",
    "Request",
    "RequestToken",
    "SavedView",
    "StaleOperation",
    "Subscription",
    "SummingState",
    "Theme",
    "UserSettings",
    "WebhookEvent",
    "collecting",
]
