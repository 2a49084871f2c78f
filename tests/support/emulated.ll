%tensor = type { ptr, i32, i32, i32, i32, ptr, ptr, i64 }

define ptr @memset(ptr %to, i32 %value, i64 %count) "no-builtins" {
entry:
  %byte = trunc i32 %value to i8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %is.done = icmp eq i64 %i, %count
  br i1 %is.done, label %end, label %step
step:
  %at = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %at
  %next = add i64 %i, 1
  br label %head
end:
  ret ptr %to
}

define ptr @memmove(ptr %to, ptr %from, i64 %count) "no-builtins" {
entry:
  %is.behind = icmp ugt ptr %to, %from
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %is.done = icmp eq i64 %i, %count
  br i1 %is.done, label %end, label %step
step:
  %next = add i64 %i, 1
  %backwards = sub i64 %count, %next
  %index = select i1 %is.behind, i64 %backwards, i64 %i
  %source = getelementptr i8, ptr %from, i64 %index
  %target = getelementptr i8, ptr %to, i64 %index
  %byte = load i8, ptr %source
  store i8 %byte, ptr %target
  br label %head
end:
  ret ptr %to
}

define ptr @memcpy(ptr %to, ptr %from, i64 %count) "no-builtins" {
  %end = call ptr @memmove(ptr %to, ptr %from, i64 %count)
  ret ptr %end
}

define i32 @memcmp(ptr %a, ptr %b, i64 %count) "no-builtins" {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %is.done = icmp eq i64 %i, %count
  br i1 %is.done, label %end, label %step
step:
  %next = add i64 %i, 1
  %a.at = getelementptr i8, ptr %a, i64 %i
  %b.at = getelementptr i8, ptr %b, i64 %i
  %a.byte = load i8, ptr %a.at
  %b.byte = load i8, ptr %b.at
  %a.value = zext i8 %a.byte to i32
  %b.value = zext i8 %b.byte to i32
  %difference = sub i32 %a.value, %b.value
  %is.equal = icmp eq i32 %difference, 0
  br i1 %is.equal, label %head, label %end
end:
  %result = phi i32 [ 0, %head ], [ %difference, %step ]
  ret i32 %result
}

